package main

import (
	_ "github.com/jedib0t/go-pretty/v6/table"
	_ "github.com/jedib0t/go-pretty/v6/progress"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
)

func main() {}

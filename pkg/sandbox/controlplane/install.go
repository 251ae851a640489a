package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"berth.dev/berth/manifests"
)

// installTimeout bounds how long the API server may take to take in the manifests and serve the CRDs.
const installTimeout = 60 * time.Second

// install creates from the shipped manifests what the scheduler needs of a cluster: the CRDs, its ServiceAccount and
// its rights. The Deployment is not for here: the sandbox runs the scheduler itself.
func install(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	objects, err := shippedObjects("crd", "base/rbac.yaml")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := create(ctx, client, extensions, object); err != nil {
			return err
		}
	}
	return nil
}

// create creates one object of a kind that the shipped manifests are known to have.
func create(ctx context.Context, client kubernetes.Interface, extensions apiextensions.Interface, object runtime.Object) error {
	var err error
	opts := metav1.CreateOptions{}
	switch o := object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		if _, err = extensions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, o, opts); err == nil {
			err = waitEstablished(ctx, extensions, o.Name)
		}
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, opts)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, o, opts)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, opts)
	case *rbacv1.Role:
		_, err = client.RbacV1().Roles(o.Namespace).Create(ctx, o, opts)
	case *rbacv1.RoleBinding:
		_, err = client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, opts)
	default:
		err = errors.New("the sandbox does not install this kind")
	}
	if err != nil {
		return fmt.Errorf("installing %T: %w", object, err)
	}
	return nil
}

func waitEstablished(ctx context.Context, extensions apiextensions.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, installTimeout, true, func(ctx context.Context) (bool, error) {
		crd, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server to serve %s: %w", name, err)
	}
	return nil
}

var shippedScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}()

// shippedObjects decodes the YAML files at or below the given paths of the shipped manifests, strictly.
func shippedObjects(paths ...string) ([]runtime.Object, error) {
	decoder := serializer.NewCodecFactory(shippedScheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, root := range paths {
		err := fs.WalkDir(manifests.Files, root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(file) != ".yaml" || path.Base(file) == "kustomization.yaml" {
				return err
			}
			data, err := manifests.Files.ReadFile(file)
			if err != nil {
				return err
			}
			docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
			for {
				doc, err := docs.Read()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				if strings.TrimSpace(string(doc)) == "" {
					continue
				}
				object, _, err := decoder.Decode(doc, nil, nil)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				objects = append(objects, object)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading the shipped manifests: %w", err)
		}
	}
	return objects, nil
}

// createNodes creates the nodes with their status, which survives creation, so that they are ready from the start.
func createNodes(ctx context.Context, config *rest.Config, nodes []*corev1.Node) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	var firstErr atomic.Pointer[error]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workqueue.ParallelizeUntil(ctx, 16, len(nodes), func(i int) {
		_, err := client.CoreV1().Nodes().Create(ctx, nodes[i], metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			err = fmt.Errorf("creating node %s: %w", nodes[i].Name, err)
			firstErr.CompareAndSwap(nil, &err)
			cancel()
		}
	})
	if err := firstErr.Load(); err != nil {
		return *err
	}
	return context.Cause(ctx)
}

// Package manifests holds the files that install Berth in a cluster, so that the local control plane is set up from the
// very ones that users apply.
package manifests

import "embed"

// Files are the shipped manifests, under the paths they have in the repository.
//
//go:embed base crd nodes replace-default examples/*/*.yaml
var Files embed.FS

// Package validate checks scheduler configurations and manifests before they reach a cluster: strictly, with the line
// of each fault, and for combinations that are allowed but defeat each other.
//
// The command berth validate calls it with files, and optionally with what a cluster serves and permits. The validation
// of arguments is that of apis/config. It never changes a file or a cluster, and guesses nothing: what it cannot check
// is said. What an API server would refuse of the objects of Kubernetes is asked of one by kubectl.
package validate

// Package validate checks scheduler configurations and manifests before they reach a cluster: strictly, with the line
// of each fault, and for combinations that are allowed but defeat each other.
//
// The command berth validate calls it with files, and optionally with what a cluster serves and permits. The validation
// of arguments is that of apis/config, and packages admit and crd say what an API server would refuse. It never changes
// a file or a cluster, and guesses nothing: what it cannot check is said.
package validate

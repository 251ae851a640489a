// Package hamilock takes and gives back the locks by which HAMi's device plugin serves one pod of a node at a time: an
// annotation of the node that names the pod and the time.
//
// GPUAware takes a lock in PreBind and gives it back if the pod was not bound; the plugin on the node removes it once
// the pod has its devices. Pods of one process that want the same node's lock wait in line, each in its own binding
// cycle. It writes nothing but that annotation, knows nothing of devices, and is never called in a scheduling cycle.
package hamilock

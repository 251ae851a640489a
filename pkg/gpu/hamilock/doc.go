// Package hamilock acquires and releases the locks by which HAMi's device plugin serves one pod of a node at a time: an
// annotation of the node that names the pod and the time.
//
// GPUAware acquires a lock in PreBind and releases it if the pod was not bound; the device plugin removes it once the
// pod has its devices. Pods of one process that want the same node's lock queue up, each in its own binding cycle. It
// writes nothing but that annotation, knows nothing of devices, and is never called in a scheduling cycle.
package hamilock

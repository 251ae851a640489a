// Package podview reads what pods and nodes say that is not about GPUs, gangs, claims or prices: which controller a pod
// has and whether it has ended, whether a node may be given back, and what a pod needs of licenses, datasets,
// neighbors, addresses and service levels.
//
// The other views, the plugins and the tools call it. It keeps no state, and writes no object.
package podview

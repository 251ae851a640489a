// Package podview reads what pods and nodes declare that is not about GPUs, gangs, claims or prices: requests,
// controllers, whether a node may be given back, and what a pod needs of licenses, datasets, networks, addresses and
// service levels.
//
// The other views, the plugins and the tool call it. It keeps no state, and never writes an object.
package podview

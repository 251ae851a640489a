// Package network tells the plans of a profile where nodes are in the network.
//
// It owns nothing but the place where the two meet: NetworkTopology gives the levels of its profile, and the dry run of
// a gang asks for them. Neither knows the other, and a profile without that plugin has no levels.
package network

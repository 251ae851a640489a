// Package profiles knows what the plugins of a profile read and keep: which filters of Kubernetes it runs and with
// which arguments, which plugins count what pods take of a node, whether Reserve keeps something that other pods do not
// see, and who has to be told of pods that are added to nodes.
//
// Coscheduling's rooms ask it before they count free capacity, place gangs in a dry run, or keep capacity for them. It
// reads a profile once, changes nothing, and knows no plugin of ours by name: what a plugin has to say of itself it
// declares by an interface.
package profiles

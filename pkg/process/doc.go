// Package process is what the profiles and plugins of one scheduler process share and know of each other.
//
// Profiles and Traits say what the plugins of a profile read and keep: which filters of Kubernetes it runs and with
// which arguments, which plugins count what pods take of a node, and whether Reserve keeps something that other pods do
// not see. Book is where plugins that keep capacity and plugins that count something for the whole cluster, such as
// licenses and addresses, find each other, and Networks tells plans the levels of a profile's network. Tell and
// SureBindings write to pods around the moment when they are bound. Fence keeps a process that may no longer lead from
// writing.
//
// Plugins, Coscheduling's rooms and the scheduler's command call it. It knows no plugin of ours by name: what a plugin
// has to say of itself it declares by an interface. It decides nothing about placement.
package process

// Package process is what the profiles and plugins of one scheduler process share and know of each other.
//
// Profiles and Traits tell what the plugins of a profile read and keep. Holds tells plugins that count something for
// the whole cluster for which pods capacity is kept, and Networks tells plans the levels of a profile's network.
// Read reads what a plugin keeps in a scheduling cycle, Reject and Reasons carry the reasons of a rejection as values.
// PatchPodStatus and SureBindings write to pods when they are bound. Fence keeps a process that may no longer lead from
// writing.
//
// Plugins, the packages of Coscheduling and cmd/scheduler call it. It knows no plugin of Berth by name, only the
// interfaces that plugins implement, and never decides about placement.
package process

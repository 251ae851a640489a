// Package work reads what pods and PodGroups declare of their work: when and how often it is saved, how long they need
// after a restart, and for how long after their start they ask to be spared.
//
// Loss computes what the eviction of a pod loses. Coscheduling asks it when it chooses victims, and the tool when it
// proposes moves and explains a choice. Limits bound what is declared. It keeps no state, and never writes an object.
package work

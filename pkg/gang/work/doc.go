// Package work reads what pods and PodGroups say of their work: when it was last saved, how often it is, how long
// they need to come back, and for how long they are to be left alone after their start.
//
// Loss answers what the eviction of a pod loses. The plugin Coscheduling asks it when it chooses victims, for gangs and
// for single pods, and the operator's tool when it proposes moves and explains a choice; all get the same answer. What
// is said counts only as far as Work believes it. The package keeps no state, and writes no object.
package work

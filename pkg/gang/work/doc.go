// Package work reads what pods, their groups and controllers declare of their work: how long it runs and by when it has
// to end, when and how often it is saved, how long it needs after a restart, and for how long after their start pods
// ask to be spared. It computes what the work of a pod is worth that is lost.
//
// Reservations, the controller of PodGroups, preemption, price windows and the tool call it. Limits bound what is
// declared, and run times of more than ten years are ignored. It keeps no state, and never writes an object.
package work

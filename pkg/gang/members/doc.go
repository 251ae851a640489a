// Package members finds the pods that are members of gangs, the gangs of pods and the PodGroups of gangs.
//
// Directory reads what informers have, and keeps only what groups of other schedulers declare, which package status
// writes to it. The coscheduling plugin and the packages of gangs call it. It never writes an object, and package read
// decides whether a pod is a member.
package members

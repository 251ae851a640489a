// Package members finds the pods that are members of gangs, the gangs of pods and the PodGroups of gangs.
//
// Directory reads what informers hold, and keeps only what groups of other schedulers declare, which package status
// tells it. It is asked by the coscheduling plugin and by what decides and acts for it, and writes no object. Whether a
// pod is a member is what package read finds in it.
package members

// Package numbering reads how controllers number the pods of a gang: the index of each, and which labels and
// annotations only tell one pod from another, so that pods without these are alike to filters and scores.
//
// Package read makes members of pods with it; plans, explanations and replays sort pods by their index. It knows the
// keys of controllers, but no object of theirs, and does not say which gang a pod is in.
package numbering

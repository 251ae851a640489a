// Package numbering reads how controllers number the pods of a gang, and which labels and annotations only number pods,
// so that pods without these are equal to filters and scores.
//
// Package read, plans, explanations and replays call it. It knows the keys of controllers, but none of their objects,
// and never which gang a pod is in.
package numbering

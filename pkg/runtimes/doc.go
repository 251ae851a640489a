// Package runtimes forecasts when pods end.
//
// A pod may declare how long it runs, or after what time it is ended. Otherwise its run time is learned from pods of
// its class that have ended: of the same namespace, controller, image and number of GPUs, and of wider classes while few
// of these are known. What was declared is judged in the same way: by how the runs of the class compared with what they
// had declared. A forecast is a distribution of the time that is left, given how long the pod runs already. A pod that
// outlives what its class lets expect falls back on wider classes, and in the end on a guess that grows with its age.
//
// The Book is the one owner of what has been learned. It is fed by whoever sees pods end, it is bounded, no namespace
// can displace what was learned of others, and its state can be written and read. It knows no Kubernetes and no clock.
package runtimes

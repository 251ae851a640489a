// Package runtimes forecasts when pods end. A forecast is a distribution of the time that is left, given how long the
// pod runs already.
//
// It is what the pod declares, judged by how declarations of its class came true; otherwise what was learned from pods
// of its class that have ended; otherwise a guess that grows with the age of the pod. A class is namespace, controller,
// image and number of GPUs; wider classes count while little is known.
//
// Book owns what was learned. Its caller feeds it with pods that end, asks for forecasts, and writes and reads its
// state. It is bounded, and no namespace can displace what was learned of others. It knows no Kubernetes and no clock.
// Package starttime reads the forecasts.
package runtimes

// Package catalog is what makers and providers document: of GPUs the memory, generation and form factor, of instance
// types their GPUs, and the names by which labels call both. Packages gpu and gpuview ask it where labels do not say.
// It never guesses: what it does not list is unknown.
package catalog

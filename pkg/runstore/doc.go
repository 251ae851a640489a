// Package runstore keeps what was learned of run times in a ConfigMap, so that it survives a restart.
//
// The plugin of gangs starts a Store beside its loop. The store reads the ConfigMap once, and the scheduler that leads
// writes it when something was learned: every five minutes at most, and before it gives its lease back. What cannot be
// read is a warning and an empty book. Nothing waits for it: without the right to read or write, run times are learned
// from the start again.
//
// It knows nothing of what is in the book, and never writes while another scheduler may lead.
package runstore

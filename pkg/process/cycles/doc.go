// Package cycles is what plugins say and keep in a scheduling cycle: their state, the terms of a score, and the reasons
// of a rejection, as values that need no words.
//
// The plugins and the dry run of gangs call it, and explain and replays, which ask what a plugin has said. It decides
// nothing.
package cycles

// Package dump takes snapshots of clusters to files and reads them: of each object that a scheduler reads, the fields
// that it reads, with names hashed on demand.
//
// The command berth dump writes them, and replay, explain and advise read them. Which fields that are is in package
// inputs. A dump never has environment variables, Secrets or other fields that no scheduler reads, and a file that
// cannot be read exactly is an error.
package dump

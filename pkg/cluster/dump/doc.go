// Package dump writes snapshots of clusters to files and reads them. A dump has the objects and the fields that a
// scheduler reads; names can be hashed.
//
// The command berth dump writes dumps; replay, compare, explain and advise read them. Package inputs selects the
// fields: never environment variables, Secrets or others that no scheduler reads. A file that cannot be read exactly is
// an error.
package dump

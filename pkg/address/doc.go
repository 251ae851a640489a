// Package address keeps account of fixed addresses: which exist, where they are routable, and which pods have them.
//
// A Ledger records pools and reservations that exist, and promises addresses to pods. An address that is promised or
// reserved is never promised to another pod. Sets of addresses are kept as ranges, so that an IPv6 prefix costs as much
// as a single address.
//
// IPReservation calls it. It knows no Kubernetes and writes nothing.
package address

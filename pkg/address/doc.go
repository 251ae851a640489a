// Package address keeps account of fixed addresses: which there are, where they are routable, and who has them.
//
// A Ledger is told of pools and of reservations that exist, and promises addresses to pods. An address is never
// promised twice, and what is promised or reserved is never promised to another pod. Sets of addresses are kept as
// ranges, so that an IPv6 prefix costs as much as a single address.
//
// IPReservation calls it. It knows no Kubernetes and writes nothing.
package address

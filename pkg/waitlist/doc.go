// Package waitlist knows the gangs that wait to be planned: what each needs, whether it may fit by what is free, and if
// not, why.
//
// List owns that. The loop of the Coscheduling plugin puts gangs in, takes them out, and asks; reservations look at it
// for who has waited long. It never tries a gang, and keeps no capacity.
package waitlist

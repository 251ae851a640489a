// Package account counts, within one dry run, what members of a gang take that the scheduler's own filters see only
// when it is written to the API: pods in the domains of a topology spread constraint, storage that a driver would
// provision, and claims that several members share.
//
// A dry run asks it in addition to the filters of the profile, and reports each member that it places. The counts end
// with the dry run. The package writes nothing, and knows neither gangs nor plugins.
package account

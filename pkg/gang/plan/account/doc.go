// Package account counts, within one dry run, what members of a gang take that the scheduler's own filters see only
// once it is written: places by a topology spread constraint, storage that a driver would provision, and claims that
// several members share.
//
// A dry run asks an account beside the filters of the profile, and tells it of each member that it places. An account
// is thrown away with the dry run; it writes nothing, and knows neither gangs nor plugins.
package account

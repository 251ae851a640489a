// Package candidates lets a profile look at the best nodes first, so that most plugins see a few nodes instead of all.
//
// The rankers of a profile score each class of equal nodes once. The filters run on nodes of the best classes until
// enough pass, and the framework gets these nodes as the result of PreFilter. The node that is chosen is one that could
// have been chosen among all; if that is not certain, the cycle looks at all nodes.
//
// The scheduler, replays and advice call Wrap once for their profiles; plugins implement Ranker and Locator. The
// package owns the index of classes of each profile. It never scores a node itself, and never changes a result.
package candidates

// Package candidates lets a profile look at the best nodes first, so that most plugins see a few nodes instead of all.
//
// Most nodes of a large cluster are in the same few states. The rankers of a profile score each such class of nodes
// once, the filters run on nodes of the best classes until enough pass, and the framework gets these nodes as the
// result of PreFilter. The node that wins is one that would have won among all; a cycle in which that is not sure looks
// at all nodes.
//
// The scheduler, replays and advice call Wrap once for their profiles; plugins take part by the interfaces Ranker and
// Locator. The package owns the index of classes, by profile. It never scores a node itself, and never changes a
// result.
package candidates

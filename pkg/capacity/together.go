package capacity

import "slices"

// amounts are the resources that limit how many pods of some shapes share a node.
type amounts struct {
	// resources are their positions, claimed those that device classes hand out where nodes do not offer them.
	resources []int
	claimed   map[int]bool
	// asks is what a pod asks for, by shape and resource.
	asks [][]int64
}

// amountsOf returns what limits pods of these shapes together.
func (x *store) amountsOf(keys []ShapeKey) *amounts {
	a := &amounts{claimed: map[int]bool{}, asks: make([][]int64, len(keys))}
	for _, key := range keys {
		if s := x.shapes.byKey[key]; s != nil {
			for _, b := range s.bounds {
				a.resources = append(a.resources, b.Resource)
				a.claimed[b.Resource] = b.claimed
			}
		}
	}
	slices.Sort(a.resources)
	a.resources = slices.Compact(a.resources)
	for k, key := range keys {
		a.asks[k] = make([]int64, len(a.resources))
		if s := x.shapes.byKey[key]; s != nil {
			for _, b := range s.bounds {
				a.asks[k][slices.Index(a.resources, b.Resource)] = b.Amount
			}
		}
	}
	return a
}

// free is what a node has of the resources besides what is used, if anything.
func (a *amounts) free(has, used []int64) []int64 {
	free := make([]int64, len(a.resources))
	for i, r := range a.resources {
		free[i] = has[r]
		if used != nil {
			free[i] = max(has[r]-used[r], 0)
		}
		if a.claimed[r] && has[r] == 0 {
			free[i] = maxUse
		}
	}
	return free
}

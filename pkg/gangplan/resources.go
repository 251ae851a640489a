package gangplan

// Amount is how much of one resource a group wants to be free before it is tried, and how much is: in a unit of the
// caller's.
type Amount struct {
	Resource     string
	Wanted, Free int64
}

// Lacking returns the amounts that exceed what is free.
func Lacking(amounts []Amount) []Amount {
	var short []Amount
	for _, a := range amounts {
		if a.Free < a.Wanted {
			short = append(short, a)
		}
	}
	return short
}

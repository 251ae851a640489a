package mix

// Due reports whether the next Redraw looks.
func (m *Mix) Due() bool { return m.arrivals >= m.redrawAt }

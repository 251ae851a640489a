package svg

// colors are told apart by readers who confuse red and green, too.
var colors = []string{"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Color is that of line number i, in hexadecimal; the colors repeat.
func Color(i int) string { return colors[i%len(colors)] }

package svg

import _ "embed" // for the style sheet

// PageStyle is the style of pages that hold plots: colors for light, dark and paper, text, tables, and the parts of
// plots.
//
//go:embed page.css
var PageStyle string

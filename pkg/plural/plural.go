// Package plural puts a number and what it counts into words, so that one node is never "1 nodes".
package plural

import "fmt"

// Of is the number with the noun, which takes an s unless the number is 1.
func Of[N int | int32 | int64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Noun(n, noun))
}

// Noun is the noun alone as it follows the number.
func Noun[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Choose is the word for one, or the one for any other number.
func Choose[N int | int32 | int64](n N, one, other string) string {
	if n == 1 {
		return one
	}
	return other
}

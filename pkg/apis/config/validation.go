package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEnum returns an error unless the value is allowed.
func validateEnum[T ~string](path *field.Path, value T, allowed []T) field.ErrorList {
	if !slices.Contains(allowed, value) {
		return field.ErrorList{field.NotSupported(path, value, allowed)}
	}
	return nil
}

// validateRange returns an error for a number outside of [lowest, highest]. Nil is valid.
func validateRange[N int32 | int64](path *field.Path, value *N, lowest, highest N) field.ErrorList {
	if value != nil && (*value < lowest || *value > highest) {
		return field.ErrorList{field.Invalid(path, *value,
			fmt.Sprintf("want a whole number from %d to %d", lowest, highest))}
	}
	return nil
}

// validateEach returns errors for entries for which wrong returns texts, and for duplicates.
func validateEach[T comparable](path *field.Path, entries []T, wrong func(T) []string) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range entries {
		for _, problem := range wrong(entry) {
			errs = append(errs, field.Invalid(path.Index(i), entry, problem))
		}
		if slices.Contains(entries[:i], entry) {
			errs = append(errs, field.Duplicate(path.Index(i), entry))
		}
	}
	return errs
}

// setDefault fills an optional field that was left out.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

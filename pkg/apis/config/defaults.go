package config

// setDefault fills an optional field that was left out.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

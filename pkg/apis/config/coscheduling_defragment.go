package config

import "k8s.io/apimachinery/pkg/util/validation/field"

// Defragment moves pods that run to other nodes where a gang that is told its start then starts sooner, if that gains
// more GPU time than the moves lose: work that is not saved, and the time to come back. Only pods of the gang's
// priority or less move that a controller replaces and that are in no gang, one after the other, as
// PodDisruptionBudgets allow.
type Defragment struct {
	// MovesPerHour is how many pods may be moved in any hour. From 0 (none) to 10000, default 0.
	MovesPerHour *int32 `json:"movesPerHour,omitempty"`
	// LostGPUHoursPerHour is how many GPU hours of work the moves may lose in any hour. From 1 to 100000, default 8.
	LostGPUHoursPerHour *int32 `json:"lostGPUHoursPerHour,omitempty"`
}

func setDefaultsDefragment(d *Defragment) {
	setDefault(&d.MovesPerHour, 0)
	setDefault(&d.LostGPUHoursPerHour, 8)
}

// validateDefragment checks what moves may cost. Where work does not count, all moves would seem to lose nothing.
func validateDefragment(path *field.Path, d *Defragment, p *Preemption) field.ErrorList {
	errs := append(validateRange(path.Child("movesPerHour"), int64(*d.MovesPerHour), 0, 10000),
		validateRange(path.Child("lostGPUHoursPerHour"), int64(*d.LostGPUHoursPerHour), 1, 100000)...)
	if *d.MovesPerHour > 0 && p != nil && *p.MaxUnsavedSeconds == 0 {
		errs = append(errs, field.Invalid(path.Child("movesPerHour"), *d.MovesPerHour,
			"want 0 where preemption.maxUnsavedSeconds is 0: what moves lose is not known"))
	}
	return errs
}

package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestValidateQueueSLA(t *testing.T) {
	t.Parallel()
	ageing := &QueueAgeing{PriorityPerHour: ptr.To[int32](1000)}
	class := func(c SLAClass) *QueueSLA { return &QueueSLA{Classes: []SLAClass{c}} }
	for _, tc := range []struct {
		name string
		sla  *QueueSLA
		err  string
	}{
		{"no classes at all", nil, ""},
		{"classes without ageing",
			class(SLAClass{Name: "a", PriorityClasses: []string{"p"}, DeadlineSeconds: ptr.To[int32](60),
				TimeoutSeconds: ptr.To[int32](600)}), ""},
		{"ageing without classes", &QueueSLA{Ageing: ageing}, ""},
		{"nothing", &QueueSLA{}, "args.sla: Required value: want classes, ageing or both"},
		{"a class without a name", class(SLAClass{}), `args.sla.classes[0].name: Invalid value: "": want a DNS label, such as interactive`},
		{"a name that is no label", class(SLAClass{Name: "A b"}), `args.sla.classes[0].name: Invalid value: "A b": want a DNS label, such as interactive`},
		{"one name twice", &QueueSLA{Classes: []SLAClass{{Name: "a"}, {Name: "a"}}}, `args.sla.classes[1].name: Duplicate value: "a"`},
		{"a PriorityClass that cannot be", class(SLAClass{Name: "a", PriorityClasses: []string{""}}),
			`args.sla.classes[0].priorityClasses[0]: Invalid value: "": want the name of a PriorityClass`},
		{"a PriorityClass twice", class(SLAClass{Name: "a", PriorityClasses: []string{"p", "p"}}), `args.sla.classes[0].priorityClasses[1]: Duplicate value: "p"`},
		{"no deadline at all", class(SLAClass{Name: "a", DeadlineSeconds: ptr.To[int32](0)}),
			"args.sla.classes[0].deadlineSeconds: Invalid value: 0: want a whole number from 1 to 2592000"},
		{"no time for a deadline of a pod", class(SLAClass{Name: "a", EarliestOwnDeadlineSeconds: ptr.To[int32](0)}),
			"args.sla.classes[0].earliestOwnDeadlineSeconds: Invalid value: 0: want a whole number from 1 to 2592000"},
		{"a timeout in the past", class(SLAClass{Name: "a", TimeoutSeconds: ptr.To[int32](-1)}),
			"args.sla.classes[0].timeoutSeconds: Invalid value: -1: want a whole number from 1 to 2592000"},
		{"an age without ageing",
			class(SLAClass{Name: "a", PriorityClasses: []string{"p"}, AgeFromPriority: ptr.To[int32](1)}),
			"args.sla.classes[0].ageFromPriority: Forbidden: has no effect without ageing"},
		{"an age that any pod could take",
			&QueueSLA{Ageing: ageing, Classes: []SLAClass{{Name: "a", AgeFromPriority: ptr.To[int32](1)}}},
			"args.sla.classes[0].ageFromPriority: Forbidden: needs priorityClasses, or any pod could take the class"},
		{"an age of the system's",
			&QueueSLA{Ageing: ageing,
				Classes: []SLAClass{{Name: "a", PriorityClasses: []string{"p"}, AgeFromPriority: ptr.To[int32](2e9)}}},
			"args.sla.classes[0].ageFromPriority: Invalid value: 2000000000: " +
				"want a whole number from -2000000000 to 1000000000"},
		{"ageing by nothing", &QueueSLA{Ageing: &QueueAgeing{PriorityPerHour: ptr.To[int32](0)}},
			"args.sla.ageing.priorityPerHour: Invalid value: 0: want a whole number from 1 to 2000000000"},
		{"ageing without a rate", &QueueSLA{Ageing: &QueueAgeing{}},
			"args.sla.ageing.priorityPerHour: Required value: want a whole number from 1 to 2000000000"},
		{"ageing of what is critical",
			&QueueSLA{Ageing: &QueueAgeing{PriorityPerHour: ptr.To[int32](1), UpToPriority: ptr.To[int32](2e9)}},
			"args.sla.ageing.upToPriority: Invalid value: 2000000000: " +
				"want a whole number from -2000000000 to 1000000000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := &CoschedulingArgs{SLA: tc.sla.DeepCopy()}
			args.SetDefaults()
			message := ""
			if err := args.Validate(field.NewPath("args")); err != nil {
				message = err.Error()
			}
			if message != tc.err {
				t.Errorf("error %q, want %q", message, tc.err)
			}
		})
	}
}

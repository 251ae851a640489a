package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestReadJobs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []Job
	}{
		"a CSV file gives jobs in the order of arrival": {
			text: "name,arrival,duration,pods,cpu_milli,memory_mib,gpus,gpu_milli,models,gang,priority,spot\n" +
				"late,90,1h30m,4,8000,65536,4,,A100|H100,true,10,tolerate\n" +
				"early,0.5,,1,2000,8192,1,460,,false,,\n",
			want: []Job{
				{Name: "early", Arrival: 500 * time.Millisecond, Pods: 1, CPUMilli: 2000, MemoryMiB: 8192, GPUs: 1, GPUMilli: 460},
				{Name: "late", Arrival: 90 * time.Second, Duration: 90 * time.Minute, Pods: 4, CPUMilli: 8000, MemoryMiB: 65536,
					GPUs: 4, GPUMilli: 1000, Models: []string{"A100", "H100"}, Gang: true, Priority: 10, Spot: "tolerate"},
			},
		},
		"JSON lines have the same keys and the same meaning": {
			text: `{"name":"late","arrival":90,"duration":"1h30m","pods":4,"cpu_milli":8000,"memory_mib":65536,"gpus":4,"models":["A100","H100"],"gang":true,"priority":10,"spot":"tolerate"}` + "\n\n" +
				`{"name":"early","cpu_milli":2000,"memory_mib":8192,"gpus":1,"gpu_milli":460,"arrival":0.5}`,
			want: []Job{
				{Name: "early", Arrival: 500 * time.Millisecond, Pods: 1, CPUMilli: 2000, MemoryMiB: 8192, GPUs: 1, GPUMilli: 460},
				{Name: "late", Arrival: 90 * time.Second, Duration: 90 * time.Minute, Pods: 4, CPUMilli: 8000, MemoryMiB: 65536,
					GPUs: 4, GPUMilli: 1000, Models: []string{"A100", "H100"}, Gang: true, Priority: 10, Spot: "tolerate"},
			},
		},
		"a pod of the openb trace runs from its scheduling to its deletion": {
			text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
				"scheduled_time\n" +
				"p-0,6000,12288,1,460,,LS,Running,100,400,150\np-1,6000,12288,0,0,V100,BE,Failed,100,100,\n",
			want: []Job{
				{Name: "p-0", Arrival: 100 * time.Second, Duration: 250 * time.Second, Pods: 1, CPUMilli: 6000, MemoryMiB: 12288,
					GPUs: 1, GPUMilli: 460},
				{Name: "p-1", Arrival: 100 * time.Second, Duration: time.Second, Pods: 1, CPUMilli: 6000, MemoryMiB: 12288},
			},
		},
		"a job may say where its pods live, and what they are labelled with": {
			text: "name,cpu_milli,memory_mib,pods,gang,namespace,labels\n" +
				"a,1,2,2,true,ml,team=vision|example.com/tier=|cost-center=4.2\nb,1,2,1,,,\n",
			want: []Job{
				{Name: "a", Pods: 2, CPUMilli: 1, MemoryMiB: 2, Gang: true, Namespace: "ml",
					Labels: map[string]string{"team": "vision", "example.com/tier": "", "cost-center": "4.2"}},
				{Name: "b", Pods: 1, CPUMilli: 1, MemoryMiB: 2},
			},
		},
		"the short openb form has no times": {
			text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1,2,8,1000\n",
			want: []Job{{Name: "p-0", Pods: 1, CPUMilli: 1, MemoryMiB: 2, GPUs: 8, GPUMilli: 1000}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadJobs(strings.NewReader(tt.text), "jobs.csv")
			require.NoError(t, err)
			assert.Equal(t, "jobs", tt.want, got)
		})
	}
}

func TestReadJobsRefuses(t *testing.T) {
	t.Parallel()
	const header = "name,arrival,duration,pods,cpu_milli,memory_mib,gpus,gpu_milli,spot\n"
	tests := map[string]struct{ text, want string }{
		"an empty file":                {"", `f.csv: the file is empty; want a header row`},
		"a file with a header only":    {header, `f.csv: there are no jobs in the file`},
		"a foreign file":               {"\x7fELF\x02\x01\x01\x00\x00\n", `f.csv:1: column "name" is missing; want name,cpu_milli,memory_mib`},
		"an unknown column":            {"name,cpu_milli,memory_mib,colour\na,1,1,red\n", `f.csv:1: column "colour" is unknown; allowed are name,cpu_milli,memory_mib,arrival,duration,pods,gpus,gpu_milli,models,gang,priority,spot,namespace,labels,run_time,checkpoint_every`},
		"a line that is cut off":       {header + "a,0,60,1,1000,1024,1,,\nb,0,6", `f.csv:3: wrong number of columns; the header has 9 (is the file cut off?)`},
		"a negative duration":          {header + "a,0,-60,1,1000,1024,1,,\n", `f.csv:2: column "duration": "-60" is not allowed; want seconds (90) or a duration (1h30m), not negative, at most 100 years`},
		"a duration that is no number": {header + "a,0,NaN,1,1000,1024,1,,\n", `f.csv:2: column "duration": "NaN" is not allowed; want seconds (90) or a duration (1h30m), not negative, at most 100 years`},
		"a huge number of pods":        {header + "a,0,60,99999999999999999999,1000,1024,1,,\n", `f.csv:2: column "pods": "99999999999999999999" is not allowed; want a whole number from 1 to 1000000`},
		"a share of several GPUs":      {header + "a,0,60,1,1000,1024,2,500,\n", `f.csv:2: column "gpu_milli": "500" is not allowed; want 1000 for a pod of several GPUs, 1 to 1000 for one of one`},
		"an unknown stand to spot":     {header + "a,0,60,1,1000,1024,1,,maybe\n", `f.csv:2: column "spot": "maybe" is not allowed; want tolerate, require or avoid`},
		"a namespace that cannot be":   {"name,cpu_milli,memory_mib,namespace\na,1,1,a.b\n", `f.csv:2: column "namespace": "a.b" is not allowed; want the name of a namespace (at most 63 lower case letters, digits and '-')`},
		"a label that cannot be":       {"name,cpu_milli,memory_mib,labels\na,1,1,team=a b\n", `f.csv:2: column "labels": "team=a b" is not allowed; want labels such as team=vision, joined by |, each key once`},
		"a label twice":                {"name,cpu_milli,memory_mib,labels\na,1,1,a=1|a=2\n", `f.csv:2: column "labels": "a=1|a=2" is not allowed; want labels such as team=vision, joined by |, each key once`},
		"a name twice":                 {header + "a,0,60,1,1000,1024,1,,\na,9,60,1,1000,1024,1,,\n", `f.csv:3: job "a" is there already`},
		"a name that no pod can have":  {header + "A b,0,60,1,1000,1024,1,,\n", `f.csv:2: column "name": "A b" is not allowed; want lower case letters, digits, '-' and '.', a letter or digit at both ends`},
		"an end before the beginning":  {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\np,1,1,0,0,100,50\n", `f.csv:2: column "deletion_time": "50" is not allowed; want a time not before creation_time 100`},
		"a line that does not end":     {header + "a," + strings.Repeat("0", 2<<20), `f.csv:2: the line is longer than 1 MiB`},
		"a quote that does not end":    {header + "a,0,60,1,1000,1024,1,,\n\"b\nb\",,,,,,,,\"" + strings.Repeat("0\n", 2<<20), `f.csv:3: the row that begins here is longer than 1 MiB (is a quote missing?)`},
		"a header that does not end":   {"\"" + strings.Repeat("0\n", 2<<20), `f.csv:1: the row that begins here is longer than 1 MiB (is a quote missing?)`},
		"a JSON line without end":      {`{"name":"` + strings.Repeat("a", 2<<20), `f.csv:1: the line is longer than 1 MiB`},
		"JSON that is cut off":         {`{"name":"a","cpu_milli":1,"memory_mib":1}` + "\n" + `{"name":"b","cpu_mi`, `f.csv:2: not a JSON object (is the file cut off?): unexpected end of JSON input`},
		"JSON with a wrong key":        {`{"name":"a","cpus":1}`, `f.csv:1: key "cpus" is unknown; allowed are name,cpu_milli,memory_mib,arrival,duration,pods,gpus,gpu_milli,models,gang,priority,spot,namespace,labels,run_time,checkpoint_every`},
		"JSON with a nested value":     {`{"name":{"a":1}}`, `f.csv:1: key "name": want a string, a number, true, false or a list of strings`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadJobs(strings.NewReader(tt.text), "f.csv")
			if err == nil {
				t.Fatal("no error")
			}
			assert.Equal(t, "error", tt.want, err.Error())
		})
	}
}

func TestManyRowsAreNotARow(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	rows.WriteString("name,cpu_milli,memory_mib,models\n")
	const count = 30_000
	for i := range count {
		fmt.Fprintf(&rows, "\"job-%d\n\",1000,1024,\"A100-SXM4-80GB|H100-SXM5-80GB\"\n", i)
	}
	jobs, err := ReadJobs(strings.NewReader(rows.String()), "f.csv")
	if err != nil || len(jobs) != count || rows.Len() <= maxLine {
		t.Errorf("%d jobs of %d bytes, error %v; want %d of more than %d", len(jobs), rows.Len(), err, count, maxLine)
	}
}

func FuzzReadJobs(f *testing.F) {
	f.Add("name,arrival,duration,pods,cpu_milli,memory_mib,gpus,gpu_milli,models,gang,priority,spot\n" +
		"a,0,1h,2,1,1,1,500,T4|P100,true,-1,avoid\n")
	f.Add(`{"name":"a","cpu_milli":1,"memory_mib":1,"models":["x"]}`)
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1,2,8,1000\n")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := ReadJobs(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("the error does not begin with the file: %v", err)
			}
			return
		}
		for _, j := range jobs {
			if j.Arrival < 0 || j.Duration < 0 || j.Pods < 1 || j.CPUMilli < 0 || j.MemoryMiB < 0 || j.GPUs < 0 ||
				j.GPUs > 0 && (j.GPUMilli < 1 || j.GPUMilli > 1000) || j.GPUs > 1 && j.GPUMilli != 1000 ||
				nameProblem(j.Name) != "" {
				t.Errorf("a job that no reader should let through: %+v", j)
			}
		}
	})
}

package tools_test

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// frame shows the page at the width of a phone and, when it is laid out, writes down what sticks out of it. A browser's
// own window cannot be made that narrow.
const frame = `<!doctype html><title>frame</title>
<iframe srcdoc="%s" style="width:390px;height:844px;border:0"></iframe>
<script>
onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const within = e => e.closest(".scroll, svg, details:not([open])");
  const out = [...page.querySelectorAll("body *")].filter(e => !within(e) && e.getBoundingClientRect().right > 390.5);
  const unseen = [...page.querySelectorAll("figure > svg")].filter(e => e.getBoundingClientRect().height < 20);
  const root = page.documentElement;
  document.title = "wider by " + (root.scrollWidth - root.clientWidth) + ", out=" + out.map(e => e.outerHTML.slice(0, 80)).join() + ", unseen=" + unseen.length;
};
</script>`

// TestTheReportFitsAPhone compares two configurations on a cluster with the longest names that a page may have to hold,
// and lays the page out in a real browser.
func TestTheReportFitsAPhone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes := "name,cpu_milli,memory_mib,gpus,model\n"
	for i := range 300 {
		nodes += fmt.Sprintf("node-%d,64000,262144,8,T4\n", i)
	}
	jobs := "name,arrival,duration,cpu_milli,memory_mib,gpus,pods,gang\n"
	for i := range 10 {
		jobs += fmt.Sprintf("job-%d,%ds,1h,1000,1024,%d,1,false\n", i, i, 1+i%8)
	}
	jobs += "fits-nowhere,41s,1h,65000,1024,8,24,true\n"
	config := filepath.Join(dir, strings.Repeat("scheduler-config-", 6)+".yaml")
	trace := filepath.Join(dir, strings.Repeat("a-very-long-name-of-a-trace.", 5)+"csv")
	for path, content := range map[string]string{config: readManifest(t, "base/scheduler-config.yaml"), trace: jobs} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	report := filepath.Join(dir, "report.html")
	mustBerth(t, "compare", "--a=stock", "--b="+config, "--nodes="+write(t, "nodes.csv", nodes), "--jobs="+trace,
		"--html="+report, "--seeds=1")
	page, err := os.ReadFile(report)
	require.NoError(t, err)
	assert.Contains(t, string(page), filepath.Base(config), strings.TrimSuffix(filepath.Base(trace), ".csv"),
		"gang does not fit")
	framed := write(t, "frame.html", fmt.Sprintf(frame, html.EscapeString(string(page))))
	title := titleOf(t, "file://"+framed, "--virtual-time-budget=5000")
	if want := "wider by 0, out=, unseen=0"; title != want {
		t.Errorf("on a screen 390 pixels wide: %s, want nothing that is wider or not drawn: %s", html.UnescapeString(title),
			want)
	}
}

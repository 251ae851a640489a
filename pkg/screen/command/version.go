package command

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Version is the version of an executable.
type Version struct {
	// Berth is empty in a build without a version.
	Berth      string `json:"berth"`
	Kubernetes string `json:"kubernetes"`
	Commit     string `json:"commit"`
	// Changed says that the source differed from the commit.
	Changed   bool   `json:"changed"`
	BuildDate string `json:"buildDate"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// NewVersion reads the version that a build has stamped. Kubernetes is the version in the source, for a build without
// one.
func NewVersion(info version.Info, kubernetes string) Version {
	v := Version{Kubernetes: "v" + kubernetes, Platform: info.Platform, GoVersion: info.GoVersion}
	stock, ours, stamped := strings.Cut(info.GitVersion, "-berth.")
	if !stamped {
		return v
	}
	v.Kubernetes, v.Berth = stock, "v"+ours
	v.Commit, v.Changed, v.BuildDate = info.GitCommit, info.GitTreeState == "dirty", info.BuildDate
	return v
}

// WriteTable writes a line for each known part.
func (v Version) WriteTable(out io.Writer) error {
	commit := v.Commit
	if v.Changed {
		commit += " with changes"
	}
	berth := v.Berth
	if berth == "" {
		berth = "a build without a version"
	}
	for _, line := range [][2]string{
		{"Berth", berth}, {"Kubernetes", v.Kubernetes}, {"Commit", commit}, {"Built", v.BuildDate}, {"Go", v.GoVersion},
		{"Platform", v.Platform},
	} {
		if line[1] != "" {
			if _, err := fmt.Fprintf(out, "%-12s%s\n", line[0], line[1]); err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
		}
	}
	return nil
}

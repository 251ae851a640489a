package slaaware

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/apis/config"
)

// readArgs checks the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*config.SLAAwareArgs, error) {
	args, ok := obj.(*config.SLAAwareArgs)
	if !ok {
		return nil, fmt.Errorf("reading args of profile %s: want SLAAwareArgs, got %T", profile, obj)
	}
	path := field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(Name).Child("args")
	if err := config.ValidateSLAAwareArgs(path, args); err != nil {
		return nil, err
	}
	return args, nil
}

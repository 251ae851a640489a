package rig

// InstalledGates are the feature gates with which the manifests run the scheduler.
var InstalledGates = []string{"NominatedNodeNameForExpectation=false"}

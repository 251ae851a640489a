package main

// rooms shows the way of a gang through the packages, from an event to a binding.
func rooms() string {
	c := &canvas{width: 960, height: 566}
	const (
		cyclesX, cyclesWidth = 170.0, 220.0
		ledgerX, ledgerWidth = 480.0, 170.0
		loopX, loopWidth     = 740.0, 220.0
	)
	const toCycles, fromCycles, toLedger, fromLedger = cyclesX, cyclesX + cyclesWidth, ledgerX, ledgerX + ledgerWidth
	across := func(from, to, y float64, words string) {
		c.arrow([2]float64{from, y}, [2]float64{to, y})
		c.text((from+to)/2, y-8, "s", "middle", words)
	}
	down := func(x, from, to float64, words string) {
		c.arrow([2]float64{x, from}, [2]float64{x, to})
		c.text(x+8, (from+to)/2+4, "s", "start", words)
	}

	c.box(box{x: 0, y: 0, width: 90, height: 446, title: "API server", lines: []string{"pods, nodes,", "PodGroups"}})
	c.box(box{x: cyclesX, y: 0, width: cyclesWidth, height: 62, own: true, title: "feed", lines: []string{
		"reads objects with pkg/gangview,", "tells the owners of state",
	}})
	across(90, toCycles, 31, "1 event")
	c.box(box{x: cyclesX, y: 100, width: cyclesWidth, height: 62, own: true, title: "pkg/capacity", lines: []string{
		"what is free, and how many pods", "of each shape fit",
	}})
	down(cyclesX+cyclesWidth/2, 62, 100, "")

	c.box(box{x: ledgerX, y: 0, width: ledgerWidth, height: 330, own: true, title: "pkg/gang: the ledger", lines: []string{
		"members and their stages,", "minimum, quorum, plan,", "why a gang is blocked", "",
		"A change returns effects:", "whom to activate, allow,", "or reject",
	}})
	across(fromCycles, toLedger, 31, "2 observe")

	c.box(box{x: loopX, y: 0, width: loopWidth, height: 78, own: true, title: "pkg/gangloop: inbox and loop", lines: []string{
		"one goroutine: who is tried next,", "who cannot fit, what is kept",
	}})
	across(fromLedger, loopX, 25, "3 changed")
	across(loopX, fromLedger, 62, "4 invite")
	c.box(box{x: loopX, y: 116, width: 105, height: 62, own: true, title: "pkg/waitlist", lines: []string{"may it fit?", "why not?"}})
	c.box(box{x: loopX + 115, y: 116, width: 105, height: 62, own: true, title: "pkg/retry", lines: []string{"rounds,", "back-off, pace"}})
	down(loopX+52, 78, 116, "asks")
	down(loopX+167, 78, 116, "asks")

	c.box(box{x: loopX, y: 252, width: loopWidth, height: 78, own: true, title: "pkg/podgroup", lines: []string{
		"writes what users see: status,", "conditions, events, PodGroups",
	}})
	across(fromLedger, loopX, 291, "state")

	c.box(box{x: cyclesX, y: 200, width: cyclesWidth, height: 246, title: "kube-scheduler", lines: []string{
		"one scheduling cycle at a time", "",
		"PreEnqueue, Less: leader only", "PreFilter: lead, or follow the plan", "Filter: holds of other gangs",
		"PostFilter: evict, or look elsewhere", "Reserve, Permit: wait for siblings", "PreBind, Bind",
	}})
	across(fromCycles, toLedger, 232, "6 propose,")
	c.text((fromCycles+toLedger)/2, 248, "s", "middle", "reserve")
	across(toCycles, 90, 420, "8 bind")

	c.box(box{x: ledgerX, y: 384, width: ledgerWidth, height: 62, own: true, title: "effects", lines: []string{
		"carried out outside", "of all locks",
	}})
	down(ledgerX+ledgerWidth/2, 330, 384, "")
	across(toLedger, fromCycles, 407, "5 activate")
	across(toLedger, fromCycles, 433, "7 allow")

	c.box(box{x: cyclesX, y: 500, width: cyclesWidth, height: 62, own: true, title: "pkg/dryrun", lines: []string{
		"places the members with the", "filters and scores of the profile",
	}})
	down(cyclesX+60, 446, 500, "plan")
	c.box(box{x: ledgerX, y: 500, width: ledgerWidth, height: 62, own: true, title: "pkg/eviction", lines: []string{
		"chooses pods of lower", "priority, if that helps",
	}})
	c.arrow([2]float64{fromCycles - 40, 446}, [2]float64{toLedger, 520})
	c.text(fromCycles+14, 468, "s", "start", "or evict")
	c.box(box{x: loopX, y: 500, width: loopWidth, height: 62, own: true, title: "pkg/profiles", lines: []string{
		"what the plugins of a profile", "read and keep: all ask it",
	}})
	return c.document("A gang, from an event to a binding")
}

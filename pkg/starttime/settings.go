package starttime

// Settings are how reservations treat what is uncertain. The measurements behind the defaults are in
// docs/internals/start-times.md.
type Settings struct {
	// Held is for how many gangs, one behind the other, nodes are kept.
	Held int
	// Ready is the probability with which a node has to be free by the time by which nodes are compared.
	Ready float64
	// Exchange is how many times sooner the gang has to start elsewhere before its nodes are exchanged.
	Exchange float64
	// Enter is the probability with which a pod has to be gone by the likely start of the gang to enter.
	Enter float64
	// Slack is how much later than it was first told a gang may start for pods that are gone by then with the probability
	// Sure, as a part of its own run time.
	Slack, Sure float64
	// Seniority is how many times as long as the gang a pod has to wait to enter in any case; 0 if none may.
	Seniority float64
	// Slips is after how many slips the start is firm: only pods that are gone by then with the probability Sure enter.
	Slips int
}

// Defaults returns the settings that are best on the traces.
func Defaults() Settings {
	return Settings{Held: 2, Ready: 0.75, Exchange: 2, Enter: 0.75, Slack: 0.5, Sure: 0.95, Seniority: 3, Slips: 4}
}

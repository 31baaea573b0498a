package gomlx

// FailTeams makes all teams of a backend fail, as the loss of a device would.
func FailTeams(b *Backend, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.teams {
		_ = t.group.Members()[0].Fail(err)
	}
}

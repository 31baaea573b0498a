// Package config fills a [driver.Config] from environment variables, the only ones that Concord
// reads for itself, and checks it. Programs need it only to read the environment without opening a
// session: runtime.New does all of this.
//
// All functions may be called from any goroutine; none reads the process's environment by itself.
package config

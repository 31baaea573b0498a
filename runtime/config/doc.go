// Package config fills a [driver.Config] from environment variables and checks it. Concord itself
// reads no other variables. Programs need the package only to read the environment without opening
// a session: runtime.New does all of this.
//
// All functions may be called from any goroutine; none reads the process's environment by itself.
package config

package runsetup

// SkillsInContainer is skillsInContainer, for tests.
var SkillsInContainer = (*Setup).skillsInContainer

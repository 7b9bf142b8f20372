"""The learner of CAPES on the numbers of rules: here the rule loop and the online loop meet."""
